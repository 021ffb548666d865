resource "aws_prometheus_workspace" "this" {
  alias = var.name
}

resource "aws_prometheus_rule_group_namespace" "coterie" {
  name         = "coterie"
  workspace_id = aws_prometheus_workspace.this.id
  data         = file(var.rules_file)
}

# One message for each alert of a cluster; a page is repeated each hour, anything else each day.
locals {
  alertmanager = {
    route = {
      receiver        = "alerts"
      group_by        = ["alertname", "cluster"]
      group_wait      = "30s"
      group_interval  = "5m"
      repeat_interval = "24h"
      routes          = [{ receiver = "alerts", matchers = ["severity = page"], repeat_interval = "1h" }]
    }
    receivers = [{
      name        = "alerts"
      sns_configs = [{ topic_arn = aws_sns_topic.alerts.arn, sigv4 = { region = var.region }, send_resolved = true }]
    }]
  }
}

resource "aws_prometheus_alert_manager_definition" "this" {
  workspace_id = aws_prometheus_workspace.this.id
  definition   = yamlencode({ alertmanager_config = yamlencode(local.alertmanager) })
  depends_on   = [aws_sns_topic_policy.alerts]
}

resource "aws_cloudwatch_log_group" "services" {
  name              = "/coterie/${var.name}/services"
  retention_in_days = var.log_retention_days
}

data "aws_partition" "current" {}

# Prometheus publishes to an encrypted topic only if it may use the topic's key, which AWS's own key for topics does not
# allow.
data "aws_iam_policy_document" "key" {
  statement {
    sid       = "Administer"
    actions   = ["kms:*"]
    resources = ["*"]
    principals {
      type        = "AWS"
      identifiers = ["arn:${data.aws_partition.current.partition}:iam::${var.account_id}:root"]
    }
  }
  statement {
    sid       = "Publish"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey*"]
    resources = ["*"]
    principals {
      type        = "Service"
      identifiers = ["aps.amazonaws.com"]
    }
    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [var.account_id]
    }
  }
}

resource "aws_kms_key" "alerts" {
  description             = "${var.name}: alerts on their way"
  enable_key_rotation     = true
  deletion_window_in_days = 30
  policy                  = data.aws_iam_policy_document.key.json
}

resource "aws_sns_topic" "alerts" {
  name              = "${var.name}-alerts"
  kms_master_key_id = aws_kms_key.alerts.id
}

data "aws_iam_policy_document" "publish" {
  statement {
    actions   = ["sns:Publish", "sns:GetTopicAttributes"]
    resources = [aws_sns_topic.alerts.arn]
    principals {
      type        = "Service"
      identifiers = ["aps.amazonaws.com"]
    }
    condition {
      test     = "StringEquals"
      variable = "aws:SourceAccount"
      values   = [var.account_id]
    }
    condition {
      test     = "ArnEquals"
      variable = "aws:SourceArn"
      values   = [aws_prometheus_workspace.this.arn]
    }
  }
}

resource "aws_sns_topic_policy" "alerts" {
  arn    = aws_sns_topic.alerts.arn
  policy = data.aws_iam_policy_document.publish.json
}

resource "aws_sns_topic_subscription" "alerts" {
  for_each  = toset(var.alert_topic_subscribers)
  topic_arn = aws_sns_topic.alerts.arn
  protocol  = "email"
  endpoint  = each.key
}
