"""What every face that answers a browser needs: pages, the manners of the flow, the browser's part.

No page of its own and no rule stands here. The views, the gates, the API, the documents, the
template tags and the instruments call it; it calls the lifecycle.
"""
