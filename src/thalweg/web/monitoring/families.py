"""The metrics of a run: their names, their meanings, and their labels.

Names carry base units, and counters end with `_total`.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """Samples with one name; a name that ends with `_total` is a counter's, others are gauges'."""

    name: str
    meaning: str
    labels: tuple[str, ...] = ()

    @property
    def is_counter(self) -> bool:
        """Whether it only grows, until the process starts again."""
        return self.name.endswith("_total")

    @property
    def unit(self) -> str:
        """The unit at the end of the name; empty where it has none that OpenMetrics lists.

        >>> [Family(n, "").unit for n in ("sent_bytes_total", "lag_seconds", "bytes_per_second")]
        ['bytes', 'seconds', '']
        """
        name = self.name.removesuffix("_total")
        known = ("seconds", "bytes", "ratio")
        return next((u for u in known if name.endswith(f"_{u}") and "_per_" not in name), "")


FAMILIES = (
    Family(
        "thalweg_run_info",
        "1, with what runs where and by which strategy.",
        ("pipeline", "network", "strategy"),
    ),
    Family("thalweg_run_up", "1 while a process runs it, else 0."),
    Family("thalweg_run_state", "1 for the state that the run is in, 0 for others.", ("state",)),
    Family("thalweg_run_start_timestamp_seconds", "When the run was last started, Unix time."),
    Family("thalweg_run_heartbeat_timestamp_seconds", "When the run last reported, Unix time."),
    Family("thalweg_run_figures_timestamp_seconds", "When figures were last taken, Unix time."),
    Family("thalweg_rows_in_total", "Rows that came in, by source.", ("source",)),
    Family("thalweg_rows_out_total", "Rows that went out, by sink.", ("sink",)),
    Family("thalweg_dead_letter_rows_total", "Rows that broke a condition or an operator."),
    Family("thalweg_sent_bytes_total", "Bytes that a site sent, after compression.", ("site",)),
    Family("thalweg_changes_total", "Times that other cuts began to run, by cause.", ("cause",)),
    Family("thalweg_last_change_timestamp_seconds", "When cuts last changed, Unix time."),
    Family("thalweg_last_change_duration_seconds", "How long the last change of cuts took."),
    Family("thalweg_under_way", "1 while a change or a restart is under way, else 0.", ("kind",)),
    Family(
        "thalweg_under_way_since_timestamp_seconds",
        "When the change or restart under way began, Unix time.",
        ("kind",),
    ),
    Family(
        "thalweg_site_state", "1 for the state that a site is in, 0 for others.", ("site", "state")
    ),
    Family(
        "thalweg_site_state_since_timestamp_seconds",
        "When the state of a site began, Unix time.",
        ("site",),
    ),
    Family("thalweg_site_restarts_total", "Times that a site was started again.", ("site",)),
    Family("thalweg_site_cpu_ratio", "Share of the site's cores that is used.", ("site",)),
    Family("thalweg_site_memory_bytes", "Resident memory of the site's processes.", ("site",)),
    Family("thalweg_site_load_ratio", "Share of the time spent in batches.", ("site",)),
    Family("thalweg_site_lag_seconds", "How far a site is behind the newest event.", ("site",)),
    Family(
        "thalweg_site_figures_timestamp_seconds",
        "When load and lag of a site were last measured, Unix time.",
        ("site",),
    ),
    Family("thalweg_source_rows_per_second", "Rate of a source at a site.", ("source", "site")),
    Family(
        "thalweg_operator_rows_in_per_second",
        "Rate at which an operator reads rows.",
        ("site", "operator"),
    ),
    Family(
        "thalweg_operator_rows_out_per_second",
        "Rate at which an operator puts out rows.",
        ("site", "operator"),
    ),
    Family("thalweg_link_bytes_per_second", "What a site sends to the cloud.", ("site",)),
    Family(
        "thalweg_link_lag_seconds", "How far the cloud is behind a site in event time.", ("site",)
    ),
    Family(
        "thalweg_link_figures_timestamp_seconds",
        "When a link was last measured, Unix time.",
        ("site",),
    ),
    Family(
        "thalweg_uplink_bytes_per_second",
        "What all sites send to the cloud (B), on which decisions rest.",
    ),
    Family(
        "thalweg_uplink_estimated_bytes_per_second",
        "What all sites send to the cloud, by the model alone.",
    ),
    Family(
        "thalweg_uplink_measured_bytes_per_second",
        "What all sites send to the cloud, as measured on the links.",
    ),
    Family(
        "thalweg_uplink_passing_bytes_per_second",
        "What links carry beside that and will not for long: backlogs, rows handed over.",
    ),
    Family(
        "thalweg_uplink_measured_timestamp_seconds",
        "When the links to the cloud were last measured, Unix time.",
    ),
    Family(
        "thalweg_uplink_limit_bytes_per_second", "The most that all sites may send to the cloud."
    ),
    Family(
        "thalweg_response_time_seconds",
        "The slowest way from a device to a sink (T), on which decisions rest.",
    ),
    Family(
        "thalweg_response_time_estimated_seconds",
        "The slowest way from a device to a sink, by the model alone.",
    ),
    Family("thalweg_response_time_limit_seconds", "The largest response time that is allowed."),
    Family(
        "thalweg_usage_ratio",
        "Share of fog memory and uplinks that is taken (RU), on which decisions rest.",
    ),
    Family(
        "thalweg_usage_estimated_ratio",
        "Share of fog memory and uplinks that is taken, by the model alone.",
    ),
    Family("thalweg_usage_limit_ratio", "The usage above which a run is adapted."),
    Family("thalweg_broken_constraints", "How many constraints are broken now."),
    Family(
        "thalweg_deviation_ratio",
        "Measured over declared, where they differ by more than 20 %.",
        ("operator", "site", "figure"),
    ),
)
"""All there are, in the order in which they are exposed; each has the label `run`, too."""
