"""All rules and all transactions, in rooms. Each arrow points one way: ``.importlinter`` holds it.

- ``arriving``: how a person comes; ``operators``: their view and their actions
- ``minute``: what is done each minute
- ``said``: events and answers of the service
- ``leaving``: how a person leaves
- ``standing``: the gates that a person may pass
- ``ground``: what several of them need
"""
