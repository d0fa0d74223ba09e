from hypothesis import HealthCheck, settings

# A busy machine must not make a right answer fail.
settings.register_profile("thalweg", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("thalweg")


def pytest_collection_modifyitems(items):
    """What starts a JVM goes first: those files take longest, and the others fill the gaps."""
    items.sort(key=lambda item: item.get_closest_marker("jvm") is None)
