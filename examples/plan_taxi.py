"""Plan the taxi application, look at a surge, and compare: `python examples/plan_taxi.py`."""

import thalweg as tw


def main() -> None:
    """Print a plan, what a surge would break, and what changes with a second uplink."""
    app, net = tw.scenarios.small_taxi(), tw.scenarios.small_city()
    usual = tw.plan(app, net)
    print(usual, end="\n\n")
    print("checker:", tw.check(usual, app, net) or "no violation", end="\n\n")

    surge = tw.plan(app, net, rates={("rides", "hub-east"): 20_000.0})
    print("with 20,000 events/s in hub-east:")
    for violation in surge.violations:
        print(" ", violation)
    print()
    print(usual.diff(surge))


if __name__ == "__main__":
    main()
