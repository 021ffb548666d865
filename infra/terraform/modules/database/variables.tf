variable "name" {
  type = string
}

variable "vpc_id" {
  type = string
}

variable "subnets" {
  type = list(string)
}

variable "clients" {
  description = "Security group that may connect."
  type        = string
}

variable "instance_class" {
  type    = string
  default = "db.m7g.large"
}

variable "storage_gb" {
  type    = number
  default = 50
}

variable "backup_days" {
  description = "Backups are kept for so long; 7 or more."
  type        = number
  default     = 30
  validation {
    condition     = var.backup_days >= 7
    error_message = "Keep backups for a week at least."
  }
}

variable "redis_node_type" {
  description = "For the messages between replicas of messaging. Nothing in it has to survive."
  type        = string
  default     = "cache.t4g.small"
}
