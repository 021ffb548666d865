"""Grafana dashboards, built with Grafana's own schema library."""

from grafana_foundation_sdk.builders import common, dashboard, heatmap, prometheus, stat, table, timeseries
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.models.common import (BigValueColorMode, BigValueGraphMode, LegendDisplayMode,
                                                  TooltipDisplayMode)
from grafana_foundation_sdk.models.common import VisibilityMode
from grafana_foundation_sdk.models.dashboard import (DashboardCursorSync, DataSourceRef, Threshold, ThresholdsMode,
                                                     VariableRefresh,
                                                     VariableSort)
from grafana_foundation_sdk.models.prometheus import PromQueryFormat

SOURCE = DataSourceRef(type_val="prometheus", uid="${datasource}")
RATE = "[$__rate_interval]"
PROTOCOL = 'protocol=~"$protocol"'


def query(expr, legend="", instant=False, form=None):
    q = prometheus.Dataquery().expr(expr).legend_format(legend).datasource(SOURCE)
    if form:
        q = q.format(form)
    return q.instant() if instant else q.range()


def graph(title, unit, *queries, width=12, description=""):
    panel = (timeseries.Panel().title(title).description(description).unit(unit).datasource(SOURCE)
             .height(8).span(width).min(0)
             .fill_opacity(8).show_points(VisibilityMode.NEVER)
             .legend(common.VizLegendOptions().display_mode(LegendDisplayMode.TABLE)
                     .calcs(["lastNotNull", "max"]).show_legend(True))
             .tooltip(common.VizTooltipOptions().mode(TooltipDisplayMode.MULTI)))
    return with_targets(panel, queries)


def number(title, unit, expr, *steps, description=""):
    """steps: (from, colour) in ascending order; the first is from minus infinity."""
    panel = (stat.Panel().title(title).description(description).unit(unit).datasource(SOURCE).height(4).span(4)
             .color_mode(BigValueColorMode.BACKGROUND).graph_mode(BigValueGraphMode.AREA)
             .thresholds(dashboard.ThresholdsConfig().mode(ThresholdsMode.ABSOLUTE)
                         .steps([Threshold(value=v, color=c) for v, c in steps])))
    return with_targets(panel, [query(expr)])


def heat(title, expr, width=24, description=""):
    panel = (heatmap.Panel().title(title).description(description).datasource(SOURCE)
             .height(9).span(width).calculate(False)
             .y_axis(heatmap.YAxisConfig().unit("s")))
    return with_targets(panel, [query(expr, "{{le}}", form=PromQueryFormat.HEATMAP)])


def rows(title, unit, expr, width=12, description=""):
    panel = table.Panel().title(title).description(description).unit(unit).datasource(SOURCE).height(8).span(width)
    return with_targets(panel, [query(expr, instant=True, form=PromQueryFormat.TABLE)])


def with_targets(panel, queries):
    for i, q in enumerate(queries):
        panel = panel.with_target(q.ref_id(chr(ord("A") + i)))
    return panel


def quantiles(metric, by, where=""):
    return [query(f"histogram_quantile({q}, sum by (le, {by}) (rate({metric}_bucket{where}{RATE})))",
                  f"p{int(q * 100)} " + " ".join("{{%s}}" % label for label in by.split(", "))) for q in (0.5, 0.99)]


def board(uid, title, description, protocol=False):
    made = (dashboard.Dashboard(title).uid(uid).description(description).tags(["coterie"]).readonly()
            .timezone("utc").refresh("30s")
            .time("now-1h", "now").tooltip(DashboardCursorSync.CROSSHAIR)
            .with_variable(dashboard.DatasourceVariable("datasource").label("Prometheus").type("prometheus")))
    if protocol:
        made = made.with_variable(
            dashboard.QueryVariable("protocol").label("Protocol").datasource(SOURCE)
            .query("label_values(coterie_protocol_round_seconds_count, protocol)")
            .refresh(VariableRefresh.ON_TIME_RANGE_CHANGED)
            .sort(VariableSort.ALPHABETICAL_ASC).multi(True).include_all(True).all_value(".*"))
    return made


GREEN, AMBER, RED = "green", "orange", "red"


def overview():
    return (
        board("coterie-overview", "Coterie / Overview", "Do clients get their signatures, and in time?")
        .with_row(dashboard.Row("Objectives"))
        .with_panel(number("Signing requests that failed, 6 h", "percentunit", "coterie:sign_errors:ratio_rate6h",
                           (None, GREEN), (0.001, AMBER), (0.006, RED),
                           description="Objective: at most 0.1 % over 30 days."))
        .with_panel(number("Signatures over 0.5 s, 6 h", "percentunit", "coterie:sign_slow:ratio_rate6h",
                           (None, GREEN), (0.01, AMBER), (0.06, RED),
                           description="Objective: at most 1 % over 30 days."))
        .with_panel(number("Parties that may be lost", "none", "min(coterie_quorum_margin)", (None, RED), (0, AMBER),
                           (1, GREEN),
                           description="Before some key cannot sign. Negative: one cannot now."))
        .with_panel(number("Open vaults", "none", "sum(coterie_vault_open)", (None, RED), (1, GREEN)))
        .with_panel(number("Presignatures ready", "percentunit", "coterie:presignatures:filled_ratio", (None, RED),
                           (0.25, AMBER), (0.5, GREEN),
                           description="Of those wanted for what is in use."))
        .with_panel(number("Next certificate expires in", "s", "min(ssl_chain_expiry_seconds)", (None, RED),
                           (172800, AMBER), (1209600, GREEN)))
        .with_row(dashboard.Row("Signing"))
        .with_panel(graph("Signing requests by outcome", "reqps",
                          query('sum by (status) '
                                f'(rate(coterie_coordinator_requests_seconds_count{{method="Sign"}}{RATE}))',
                                "{{status}}")))
        .with_panel(graph("Time of a signing request, all rounds and storage", "s", *quantiles(
            "coterie_coordinator_requests_seconds", "method", '{method="Sign",status="OK"}')))
        .with_panel(graph("Time of a key creation, all rounds and storage", "s", *quantiles(
            "coterie_coordinator_requests_seconds", "method", '{method="CreateKey",status="OK"}')))
        .with_panel(graph("Signatures by scheme and outcome", "ops",
                          query(f"sum by (scheme, outcome) (rate(coterie_signings_total{RATE}))",
                                "{{scheme}} {{outcome}}")))
        .with_panel(graph("Time of a signature by scheme", "s",
                          *quantiles("coterie_signing_seconds", "scheme", '{outcome="ok"}')))
        .with_panel(graph("Burn of the error budget (1 = spent in exactly 30 days)", "none", *[
            query(f"coterie:sign_errors:ratio_rate{w} / 0.001", "errors " + w) for w in ("1h", "6h")] + [
            query(f"coterie:sign_slow:ratio_rate{w} / 0.01", "latency " + w) for w in ("1h", "6h")]))
        .with_panel(graph("Calls of the API", "reqps",
                          query(f"sum by (method, status) (rate(coterie_coordinator_requests_seconds_count{RATE}))",
                                "{{method}} {{status}}")))
        .with_row(dashboard.Row("Sessions and presignatures"))
        .with_panel(graph("Sessions by protocol and outcome", "ops",
                          query(f"sum by (protocol, outcome) (rate(coterie_sessions_total{RATE}))",
                                "{{protocol}} {{outcome}}")))
        .with_panel(graph("Requests under way", "none",
                          query("sum(coterie_coordinator_runs)", "under way"),
                          query("sum(coterie_coordinator_waiting)", "waiting for their turn"),
                          query("sum(coterie_coordinator_at_once)", "signing sessions that may run at once")))
        .with_panel(graph("Requests under way, by requester", "none",
                          query("sum by (requester) (coterie_coordinator_requester_runs)", "{{requester}}"),
                          query("sum by (requester) (coterie_coordinator_requester_waiting)",
                                "{{requester}}, waiting for their turn")))
        .with_panel(graph("Requests refused because there were too many, by requester", "reqps",
                          query("sum by (requester, reason) "
                                f"(rate(coterie_coordinator_requester_refused_total{RATE}))",
                                "{{requester}} {{reason}}")))
        .with_panel(graph("Presignatures of the coordinator", "none",
                          query("sum(coterie_coordinator_presignatures_ready)", "ready"),
                          query("sum(coterie_coordinator_presignatures_wanted)", "wanted"),
                          query("sum(coterie_coordinator_presignatures_making)", "in the making"))))


def rounds():
    where = "{" + PROTOCOL + "}"
    return (
        board("coterie-rounds", "Coterie / Rounds and regions", "Which round, party or region is slow?", protocol=True)
        .with_row(dashboard.Row("By round and region"))
        .with_panel(graph("Time in a round, p50", "s", query(
            f"max by (protocol, round, region) (coterie:round_seconds:p50_rate5m{where})",
            "{{protocol}} {{round}} {{region}}")))
        .with_panel(graph("Time in a round, p99", "s", query(
            f"max by (protocol, round, region) (coterie:round_seconds:p99_rate5m{where})",
            "{{protocol}} {{round}} {{region}}")))
        .with_panel(heat("All rounds", f"sum by (le) (increase(coterie_protocol_round_seconds_bucket{where}{RATE}))"))
        .with_row(dashboard.Row("Parties that others wait for"))
        .with_panel(graph("Share of all waiting, by party", "percentunit",
                          query("coterie:straggler:share_of_waiting_rate5m", "{{straggler}}"),
                          description="A party with most of it is the straggler."))
        .with_panel(graph("Wait for the last message of a round, p99", "s", query(
            "histogram_quantile(0.99, sum by (le, straggler) "
            f"(rate(coterie_protocol_wait_seconds_bucket{where}{RATE})))", "{{straggler}}")))
        .with_panel(rows("Mean wait: in which region, for which region", "s",
                         f"avg by (region, straggler_region) (coterie:wait_seconds:by_region_pair_rate5m{where})"))
        .with_panel(heat("Waits", f"sum by (le) (increase(coterie_protocol_wait_seconds_bucket{where}{RATE}))",
                         width=12)))


def channel():
    return (
        board("coterie-channel", "Coterie / Channel", "Messages between the parties, and how messaging carries them.")
        .with_row(dashboard.Row("Ends of the channel"))
        .with_panel(graph("Bytes", "Bps", query(
            f"sum by (mode, direction) (rate(coterie_channel_bytes_total{RATE}))", "{{mode}} {{direction}}")))
        .with_panel(graph("Requests to messaging by mode", "reqps", query(
            f"sum by (mode) (rate(coterie_channel_requests_total{RATE}))", "{{mode}}")))
        .with_panel(graph("Sends by mode and outcome", "ops", query(
            f"sum by (mode, outcome) (rate(coterie_channel_sends_total{RATE}))", "{{mode}} {{outcome}}")))
        .with_panel(graph("Time until messaging has accepted a send", "s",
                          *quantiles("coterie_channel_send_seconds", "mode")))
        .with_panel(graph("Members that each end can reach", "none",
                          query("coterie_channel_reachable", "{{job}} {{instance}}")))
        .with_panel(graph("Messages that were not handed on", "ops", query(
            f"sum by (cause) (rate(coterie_channel_rejected_total{RATE}))", "{{cause}}")))
        .with_row(dashboard.Row("Messaging"))
        .with_panel(graph("Calls", "reqps", query(
            f"sum by (route, status) (rate(coterie_messaging_requests_seconds_count{RATE}))", "{{route}} {{status}}")))
        .with_panel(graph("Time of a call, p99", "s", query(
            f"histogram_quantile(0.99, sum by (le, route) (rate(coterie_messaging_requests_seconds_bucket{RATE})))",
            "{{route}}")))
        .with_panel(graph("Messages that wait", "none",
                          query("max by (kind) (coterie_messaging_queue_depth)", "{{kind}}")))
        .with_panel(graph("Messages delivered", "ops", query(
            f"sum by (kind) (rate(coterie_messaging_delivered_total{RATE}))", "{{kind}}")))
        .with_panel(graph("WebSockets", "none",
                          query("sum by (instance, kind) (coterie_messaging_connections)", "{{instance}} {{kind}}")))
        .with_panel(graph("Devices that a request reaches, mean", "none", query(
            f"sum(rate(coterie_messaging_fanout_sum{RATE})) / sum(rate(coterie_messaging_fanout_count{RATE}))",
            "devices"))))


def party():
    return (
        board("coterie-party", "Coterie / Parties", "The inside of each party.")
        .with_row(dashboard.Row("Sessions"))
        .with_panel(graph("Sessions alive", "none", query("sum by (instance) (coterie_sessions_live)", "{{instance}}")))
        .with_panel(graph("From an order to the first message (claim and fsync included)", "s", *quantiles(
            "coterie_sessions_start_seconds", "protocol")))
        .with_panel(graph("Sessions that did not complete", "ops", query(
            f'sum by (protocol, outcome, cause) (rate(coterie_sessions_total{RATE}))',
            "{{protocol}} {{outcome}} {{cause}}")))
        .with_panel(graph("Vault open", "none", query("coterie_vault_open", "{{instance}}")))
        .with_row(dashboard.Row("Presignatures"))
        .with_panel(graph("Ready, by party and key", "none",
                          query("sum by (instance, key) (coterie_presignatures_ready)", "{{instance}} {{key}}")))
        .with_panel(graph("Made and used", "ops",
                          query(f"sum by (instance) (rate(coterie_presignatures_made_total{RATE}))",
                                "made {{instance}}"),
                          query(f"sum by (instance) (rate(coterie_presignatures_used_total{RATE}))",
                                "used {{instance}}")))
        .with_row(dashboard.Row("Store and process"))
        .with_panel(graph("A transaction of the store, fsync included", "s",
                          *quantiles("coterie_store_commit_seconds", "instance")))
        .with_panel(graph("Writes that share a transaction, mean", "none", query(
            f"sum by (instance) (rate(coterie_store_batch_sum{RATE})) "
            f"/ sum by (instance) (rate(coterie_store_batch_count{RATE}))", "{{instance}}")))
        .with_panel(graph("Clocks of the peers, ahead of this party's", "s", query(
            "coterie_clock_ahead_seconds", "{{instance}}")))
        .with_panel(graph("Space left beside the store", "percentunit", query(
            "coterie_store_free_bytes / coterie_store_total_bytes", "{{instance}}")))
        .with_panel(graph("On hold", "none", query(
            "sum by (instance, scope, cause) (coterie_holds)", "{{instance}} {{scope}} {{cause}}")))
        .with_panel(graph("Heap", "bytes",
                          query('sum by (instance) (jvm_memory_used_bytes{area="heap"})', "{{instance}}")))
        .with_panel(graph("CPU", "percentunit", query("max by (instance) (process_cpu_usage)", "{{instance}}"))))


def render():
    """File name to JSON text of each dashboard."""
    boards = {"overview": overview(), "rounds": rounds(), "channel": channel(), "party": party()}
    return {f"{name}.json": JSONEncoder(sort_keys=True, indent=1).encode(made.build()) + "\n"
            for name, made in boards.items()}
