resource "aws_prometheus_workspace" "this" {
  alias = var.name
}

resource "aws_prometheus_rule_group_namespace" "coterie" {
  name         = "coterie"
  workspace_id = aws_prometheus_workspace.this.id
  data         = file(var.rules_file)
}

resource "aws_cloudwatch_log_group" "services" {
  name              = "/coterie/${var.name}/services"
  retention_in_days = var.log_retention_days
}

resource "aws_sns_topic" "alerts" {
  name              = "${var.name}-alerts"
  kms_master_key_id = "alias/aws/sns"
}

resource "aws_sns_topic_subscription" "alerts" {
  for_each  = toset(var.alert_topic_subscribers)
  topic_arn = aws_sns_topic.alerts.arn
  protocol  = "email"
  endpoint  = each.key
}
