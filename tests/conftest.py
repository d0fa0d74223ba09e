from hypothesis import HealthCheck, settings

# A busy machine must not make a right answer fail.
settings.register_profile("thalweg", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("thalweg")


def pytest_collection_modifyitems(items):
    """What starts a JVM goes first: it is one group, and the others fit beside it."""
    items.sort(key=lambda item: item.get_closest_marker("xdist_group") is None)
