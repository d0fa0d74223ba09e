"""Sections 6 and 7 of Ntumba et al. 2024, Adaptive Scheduling of Continuous Operators for IoT Edge
Analytics: two taxi applications on ten fogs and a cloud, under 165 changes of the rates.
"""
