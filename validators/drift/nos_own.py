"""What SONiC puts into CONFIG_DB by itself, beside what it was given: fields and rows that are nobody's drift.

Sources, all of sonic-buildimage and sonic-utilities: `init_cfg.json`, which `config reload` merges under the file and
`db_migrator.py` under what is there; the migrations of `db_migrator.py` for a file that says no version
(`dhcp_rate_limit`, `FLEX_COUNTER_DELAY_STATUS`); `snmp_yml_to_configdb.py`, which names the location of snmp.yml where
there is none; featured; the loggers of daemons, which register themselves in LOGGER.

A field is SONiC's own only where nothing else was rendered: what was rendered is compared whatever its name.
"""

from __future__ import annotations

_CRM = (
    "ipv4_route", "ipv6_route", "ipv4_nexthop", "ipv6_nexthop", "ipv4_neighbor", "ipv6_neighbor",
    "nexthop_group_member", "nexthop_group",
    "acl_table", "acl_group", "acl_entry", "acl_counter", "fdb_entry", "snat_entry", "dnat_entry",
    "ipmc_entry", "mpls_inseg", "mpls_nexthop",
)  # fmt: skip
_RATE_LIMIT = frozenset({"rate_limit_interval", "rate_limit_burst"})

FIELDS = {
    "AUTO_TECHSUPPORT": frozenset(
        {"state", "rate_limit_interval", "max_techsupport_limit", "max_core_limit", "available_mem_threshold",
         "min_available_mem", "since"}
    ),
    "AUTO_TECHSUPPORT_FEATURE": frozenset({"state", "rate_limit_interval", "available_mem_threshold"}),
    "BANNER_MESSAGE": frozenset({"state", "login", "motd", "logout"}),
    "CRM": frozenset(
        {"polling_interval"}
        | {f"{one}_{of}" for one in _CRM for of in ("threshold_type", "low_threshold", "high_threshold")}
    ),
    "DEVICE_METADATA": frozenset({"buffer_model", "default_pfcwd_status", "synchronous_mode", "timezone", "region"}),
    "FEATURE": frozenset(
        {"auto_restart", "delayed", "has_global_scope", "has_per_asic_scope", "has_per_dpu_scope", "high_mem_alert",
         "set_owner", "state", "support_syslog_rate_limit", "check_up_status", "has_timer"}
    ),
    "FLEX_COUNTER_TABLE": frozenset({"FLEX_COUNTER_DELAY_STATUS"}),
    "KDUMP": frozenset({"enabled", "memory", "num_dumps"}),
    "LOGGER": frozenset({"LOGLEVEL", "LOGOUTPUT"}),
    "NTP": frozenset({"authentication", "dhcp", "server_role", "src_intf", "admin_state", "vrf"}),
    "PASSW_HARDENING": frozenset(
        {"state", "expiration", "expiration_warning", "history_cnt", "len_min", "reject_user_passw_match",
         "lower_class", "upper_class", "digits_class", "special_class"}
    ),
    "PORT": frozenset({"tpid", "pfc_asym", "dhcp_rate_limit", "subport", "core_id", "core_port_id", "num_voq"}),
    "SYSLOG_CONFIG": _RATE_LIMIT,
    "SYSLOG_CONFIG_FEATURE": _RATE_LIMIT,
}  # fmt: skip
_ROWS_OF_ANY_NAME = frozenset(
    {"AUTO_TECHSUPPORT_FEATURE", "DEVICE_METADATA", "FEATURE", "FLEX_COUNTER_TABLE", "LOGGER", "SYSLOG_CONFIG_FEATURE",
     "SYSTEM_DEFAULTS"}
)  # fmt: skip
_ROWS = frozenset({("SNMP", "LOCATION")})


def is_own_field(table: str, field: str) -> bool:
    """Whether SONiC gives a row of the table this field when nobody else does; NULL marks a row without fields."""
    return field == "NULL" or field in FIELDS.get(table, ())


def is_own_row(table: str, key: str) -> bool:
    """Whether SONiC gives the table this row when nobody else does."""
    return table in _ROWS_OF_ANY_NAME or (table, key) in _ROWS
