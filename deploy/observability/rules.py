"""Recording rules and alerts, as one file for Prometheus.

An expression that depends on a time window is written once and made for each.
"""

RUNBOOKS = "https://github.com/coterie/coterie/blob/main/docs/runbooks/alerts"

# Outcomes that are this system's fault. A refusal is an answer; a deadline that could not be met from the start is the
# caller's, and so is more than a requester's share.
BAD = ('status=~"INTERNAL|UNAVAILABLE|DEADLINE_EXCEEDED|ABORTED|RESOURCE_EXHAUSTED|UNKNOWN|DATA_LOSS",'
       'reason!~"DEADLINE_TOO_SHORT|REQUESTER_OVERLOADED"')
REQUESTS = "coterie_coordinator_requests_seconds"
WINDOWS = ["5m", "30m", "1h", "2h", "6h", "1d", "3d"]

# (share of the budget of 30 days that is gone when it fires, burn rate, long window, short window, severity, how long)
BURNS = [
    ("2 % in an hour", 14.4, "1h", "5m", "page", "2m"),
    ("5 % in six hours", 6, "6h", "30m", "page", "15m"),
    ("10 % in a day", 3, "1d", "2h", "ticket", "1h"),
    ("10 % in three days", 1, "3d", "6h", "ticket", "3h"),
]
# (name, objective, recording rule, what it is)
OBJECTIVES = [
    ("SigningErrors", 0.999, "coterie:sign_errors:ratio", "99.9 % of signing requests get a signature or a refusal"),
    ("SigningLatency", 0.99, "coterie:sign_slow:ratio", "99 % of signatures take at most half a second"),
]


def group(name, *rules):
    return f"- name: {name}\n  rules:\n" + "".join(rules)


def record(name, expr, **labels):
    return f"  - record: {name}\n    expr: |-\n{indent(expr, 6)}\n" + block("labels", labels)


def alert(name, expr, lasts, severity, summary, description, page=None, **labels):
    page = page or "".join("-" + c.lower() if c.isupper() else c for c in name.removeprefix("Coterie")).lstrip("-")
    return (
        f"  - alert: {name}\n    expr: |-\n{indent(expr, 6)}\n    for: {lasts}\n"
        + block("labels", {"severity": severity} | labels)
        + block("annotations", {"summary": summary, "description": description, "runbook_url": f"{RUNBOOKS}/{page}.md"})
    )


def block(name, values):
    return f"    {name}:\n" + "".join(f"      {k}: '{v}'\n" for k, v in values.items()) if values else ""


def indent(text, columns):
    return "\n".join(" " * columns + line.strip() for line in text.strip().splitlines())


def objectives():
    rules = []
    for w in WINDOWS:
        total = f'sum(rate({REQUESTS}_count{{method="Sign"}}[{w}]))'
        rules.append(record(f"coterie:sign_errors:ratio_rate{w}",
                            f'(sum(rate({REQUESTS}_count{{method="Sign",{BAD}}}[{w}])) or 0 * {total})\n/ {total}'))
        signed = f'method="Sign",status="OK"'
        rules.append(record(f"coterie:sign_slow:ratio_rate{w}",
                            f'1 - sum(rate({REQUESTS}_bucket{{{signed},le="0.5"}}[{w}]))\n'
                            f'/ sum(rate({REQUESTS}_count{{{signed}}}[{w}]))'))
    return group("coterie-objectives", *rules)


def recorded():
    def quantile(q, metric, by, where=""):
        return f"histogram_quantile({q}, sum by (le, {by}) (rate({metric}_bucket{where}[5m])))"

    regions = 'group by (instance, region) (coterie_protocol_round_seconds_count)'
    parties = 'group by (party, region) (coterie_protocol_round_seconds_count{party!="coordinator"})'
    waits = ("sum by (instance, protocol, straggler) (rate(coterie_protocol_wait_seconds_sum[5m]))\n"
             "/ sum by (instance, protocol, straggler) (rate(coterie_protocol_wait_seconds_count[5m]))")
    return group(
        "coterie-latency",
        record("coterie:round_seconds:p50_rate5m", quantile(0.5, "coterie_protocol_round_seconds",
                                                            "protocol, round, party, region")),
        record("coterie:round_seconds:p99_rate5m", quantile(0.99, "coterie_protocol_round_seconds",
                                                            "protocol, round, party, region")),
        record("coterie:signing_seconds:p50_rate5m", quantile(0.5, "coterie_signing_seconds", "scheme",
                                                              '{outcome="ok"}')),
        record("coterie:signing_seconds:p99_rate5m", quantile(0.99, "coterie_signing_seconds", "scheme",
                                                              '{outcome="ok"}')),
        # A party knows the name of the one that it waited for; the regions of both come from what they measure of their
        # own rounds.
        record("coterie:wait_seconds:by_region_pair_rate5m",
               "avg by (protocol, region, straggler_region) (\n"
               f"label_replace((({waits}) > 0)\n* on (instance) group_left (region) {regions},\n"
               '"party", "$1", "straggler", "(.*)")\n'
               f'* on (party) group_left (straggler_region) label_replace({parties}, "straggler_region", "$1", '
               '"region", "(.*)"))'),
        record("coterie:straggler:share_of_waiting_rate5m",
               "sum by (straggler) (rate(coterie_protocol_wait_seconds_sum[5m]))\n"
               "/ scalar(sum(rate(coterie_protocol_wait_seconds_sum[5m])))"),
        record("coterie:presignatures:filled_ratio",
               "sum(coterie_coordinator_presignatures_ready) / (sum(coterie_coordinator_presignatures_wanted) > 0)"),
    )


def burn_alerts():
    rules = []
    for name, objective, ratio, what in OBJECTIVES:
        budget = f"{1 - objective:.4g}"
        for share, burn, long, short, severity, lasts in BURNS:
            rules.append(alert(
                f"Coterie{name}BudgetBurn",
                f"{ratio}_rate{long} > {burn} * {budget}\nand\n{ratio}_rate{short} > {burn} * {budget}",
                lasts, severity, f"{what}: {share} of the error budget is being spent",
                "Over the last " + long + ": {{ $value | humanizePercentage }}. "
                + f"At this rate the budget of 30 days is gone in {720 / burn:.0f} hours.",
                page="signing-errors" if name == "SigningErrors" else "signing-latency", window=long))
    return group("coterie-budget", *rules)


def state_alerts():
    return group(
        "coterie-state",
        alert("CoterieQuorumLost", "min(coterie_quorum_margin) < 0", "1m", "page",
              "There is a key that cannot sign",
              "{{ $value }} parties too few are reachable for at least one key."),
        alert("CoterieQuorumMarginLow", "min(coterie_quorum_margin) == 0", "10m", "ticket",
              "One more party lost, and a key cannot sign",
              "As many parties as the threshold are reachable for at least one key, and no more.", page="quorum-lost"),
        alert("CoteriePresignaturesLow",
              "coterie:presignatures:filled_ratio < 0.25\n"
              "and on () sum(rate(coterie_coordinator_presignatures_missed_total[10m])) > 0",
              "10m", "ticket", "Presignatures run out faster than they are made",
              "{{ $value | humanizePercentage }} of what is wanted is ready: signatures take all rounds."),
        alert("CoteriePartySealed", "coterie_vault_open == 0", "5m", "page",
              "The party at {{ $labels.instance }} is sealed",
              "Its shares cannot be used until its data key is unwrapped."),
        alert("CoterieKeyFrozen", 'coterie_keys_troubles{kind="frozen"} > 0', "1m", "page",
              "The party at {{ $labels.instance }} has frozen keys",
              "{{ $value }} keys: it could not write down whom to leave out of them.", page="key-frozen"),
        alert("CoterieOnHold", 'coterie_holds{cause="operator"} > 0', "1m", "ticket",
              "The party at {{ $labels.instance }} holds orders",
              "{{ $value }} holds of a {{ $labels.scope }}: it refuses them until its operator lifts them."),
        alert("CoterieDiskFills", "coterie_store_free_bytes / coterie_store_total_bytes < 0.25", "15m", "ticket",
              "The disk of the party at {{ $labels.instance }} fills",
              "{{ $value | humanizePercentage }} of it is left.", page="disk-fills"),
        alert("CoterieDiskFull", "coterie_store_free_bytes / coterie_store_total_bytes < 0.08", "5m", "page",
              "The disk of the party at {{ $labels.instance }} is nearly full",
              "{{ $value | humanizePercentage }} of it is left: with records.min-free or less the party admits nothing.",
              page="disk-fills"),
        alert("CoterieClockApart", "abs(coterie_clock_ahead_seconds) > 5", "5m", "ticket",
              "The clock of the party at {{ $labels.instance }} is wrong, or those of its peers are",
              "They are ahead of it by {{ $value }} s, or behind: with more than 30 s it is not ready."),
        alert("CoterieSignerEndsUncleanly", 'coterie_keys_troubles{kind="ended_uncleanly"} > 0', "1m", "ticket",
              "The signer at {{ $labels.instance }} has died in the middle of multiplications",
              "{{ $value }} peers at least twice: a refresh is advised at 4 times, and 8 exclude the peer.",
              page="key-frozen"),
        alert("CoterieKeyNeedsRefresh", 'coterie_keys_troubles{kind!~"frozen|ended_uncleanly"} > 0', "1m", "ticket",
              "The party at {{ $labels.instance }} has keys that need new shares",
              "{{ $value }} peers are excluded, or soon will be, until keys are refreshed.", page="key-frozen"),
        alert("CoterieCertificateExpires", "min by (instance, bundle) (ssl_chain_expiry_seconds) < 14 * 86400", "1h",
              "ticket",
              "A certificate of {{ $labels.instance }} expires soon",
              "Bundle {{ $labels.bundle }}: {{ $value | humanizeDuration }} left."),
        alert("CoterieCertificateStale", "min by (instance, bundle) (ssl_chain_expiry_seconds) < 2 * 86400", "5m",
              "page",
              "A certificate of {{ $labels.instance }} is about to expire",
              "Bundle {{ $labels.bundle }}: {{ $value | humanizeDuration }} left.", page="certificate-expires"),
        alert("CoterieChannelCertificateExpires", "min by (instance) (coterie_channel_certificate_seconds) < 14 * 86400",
              "1h", "ticket", "A certificate by which {{ $labels.instance }} reaches messaging expires soon",
              "The one that it shows at the edge, or that of the authority: {{ $value | humanizeDuration }} left.",
              page="certificate-expires"),
        alert("CoterieChannelCertificateStale", "min by (instance) (coterie_channel_certificate_seconds) < 2 * 86400",
              "5m", "page", "A certificate by which {{ $labels.instance }} reaches messaging is about to expire",
              "The one that it shows at the edge, or that of the authority: {{ $value | humanizeDuration }} left.",
              page="certificate-expires"),
        alert("CoterieEdgeCertificateExpires",
              "min by (instance) (envoy_server_days_until_first_cert_expiring) < 14", "1h", "ticket",
              "A certificate of the edge at {{ $labels.instance }} expires soon",
              "{{ $value }} whole days left for the first one, that of an authority included.",
              page="certificate-expires"),
        alert("CoterieEdgeCertificateStale", "min by (instance) (envoy_server_days_until_first_cert_expiring) < 2",
              "5m", "page", "A certificate of the edge at {{ $labels.instance }} is about to expire",
              "{{ $value }} whole days left for the first one, that of an authority included.",
              page="certificate-expires"),
        alert("CoterieStraggler",
              "coterie:straggler:share_of_waiting_rate5m > 0.7\n"
              "and on (straggler) histogram_quantile(0.9, sum by (le, straggler) "
              "(rate(coterie_protocol_wait_seconds_bucket[5m]))) > 0.25",
              "15m", "ticket", "{{ $labels.straggler }} holds up the others",
              "{{ $value | humanizePercentage }} of all waiting in protocol rounds is for this party."),
        alert("CoterieRequesterOverloaded",
              "sum by (requester) "
              "(rate(coterie_coordinator_requester_refused_total{reason=\"requester_overloaded\"}[5m])) > 0",
              "10m", "ticket", "{{ $labels.requester }} asks for more than its share",
              "{{ $value | humanize }} requests a second are refused, so that others keep their places."),
        alert("CoterieMessagesPileUp", "max(coterie_messaging_queue_depth{kind=\"stored\"}) > 5000", "15m", "ticket",
              "Stored messages pile up", "{{ $value }} messages wait for devices that do not fetch them."),
        alert("CoterieReplicasApart",
              "sum by (instance) (rate(coterie_messaging_relay_seconds_count{outcome=\"failed\"}[5m])) > 0", "5m",
              "page",
              "Messaging at {{ $labels.instance }} does not reach the other replicas",
              "Redis does not answer: messages to devices of other replicas fail."),
        alert("CoterieTargetDown", "up{job=~\"coterie-.*\"} == 0", "3m", "page",
              "{{ $labels.instance }} does not answer", "Prometheus cannot read the metrics of {{ $labels.job }}."),
    )


def render():
    head = "# Generated by deploy/observability/generate.py; the build checks that it is up to date.\ngroups:\n"
    return head + "\n".join([objectives(), recorded(), burn_alerts(), state_alerts()])
