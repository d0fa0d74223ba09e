"""Section 6 of Ottenwälder et al. 2013, MigCEP: Operator Migration for Mobility Driven Distributed
Complex Event Processing: operators between vehicles that drive through a city of brokers.
"""
