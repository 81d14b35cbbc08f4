"""`python -m holdfast_worker.agent`: the agent of one host."""

from holdfast_worker.agent.agent import main

main()
