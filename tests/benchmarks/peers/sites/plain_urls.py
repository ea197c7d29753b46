from tests.benchmarks.peers.sites.who import PAGES

urlpatterns = PAGES
