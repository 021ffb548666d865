output "remote_write_url" {
  value = "${aws_prometheus_workspace.this.prometheus_endpoint}api/v1/remote_write"
}

output "log_group" {
  value = aws_cloudwatch_log_group.services.name
}

output "alert_topic_arn" {
  value = aws_sns_topic.alerts.arn
}
