from hypothesis import HealthCheck, settings

# A busy machine must not make a right answer fail.
settings.register_profile("thalweg", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("thalweg")
