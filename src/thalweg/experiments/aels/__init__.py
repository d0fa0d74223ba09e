"""The evaluation of da Silva Veith et al., run again.

Latency-Aware Strategies for Deploying Data Stream Processing Applications on Large Cloud-Edge
Infrastructure, section 5: 27 networks, 130 applications, every strategy on each of them.
"""
