"""All rules and all transactions, in rooms. Each arrow points one way: ``.importlinter`` holds it.

- ``arriving``: how a person comes; ``operators``: what operators see and do
- ``minute``: what is done each minute
- ``said``: what the service says
- ``leaving``: how a person leaves
- ``standing``: what a person may pass
- ``ground``: what several of them need
"""
