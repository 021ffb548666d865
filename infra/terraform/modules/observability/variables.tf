variable "name" {
  type = string
}

variable "cluster" {
  type = string
}

variable "account_id" {
  description = "The AWS account whose Prometheus may send alerts."
  type        = string
}

variable "region" {
  type = string
}

variable "log_retention_days" {
  type    = number
  default = 90
}

variable "alert_topic_subscribers" {
  description = "Addresses that alerts go to."
  type        = list(string)
  default     = []
}

variable "rules_file" {
  description = "Recording rules and alerts, as the observability chart has them."
  type        = string
}
