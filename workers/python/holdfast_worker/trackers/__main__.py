"""`python -m holdfast_worker.trackers`: one tracker. Messages are JSON lines, each is answered."""

from holdfast_worker.trackers.serve import main

main()
