variable "name" {
  description = "Name of the party, as in the roster."
  type        = string
  validation {
    condition     = can(regex("^[a-z][a-z0-9-]{1,30}$", var.name))
    error_message = "name must be 2 to 31 of [a-z0-9-] and begin with a letter."
  }
}

variable "account_id" {
  description = "The AWS account that this belongs to, and nothing else."
  type        = string
  validation {
    condition     = can(regex("^[0-9]{12}$", var.account_id))
    error_message = "account_id must be twelve digits."
  }
}

variable "region" {
  type = string
}

variable "zones" {
  type = list(string)
}

variable "cidr" {
  type    = string
  default = "10.0.0.0/16"
}

variable "admin_role_arns" {
  description = "Roles of this account that administer the cluster and the keys."
  type        = list(string)
  validation {
    condition = length(var.admin_role_arns) > 0 && alltrue([
      for arn in var.admin_role_arns : can(regex("^arn:[a-z-]+:iam::${var.account_id}:role/", arn))
    ])
    error_message = "Only roles of the own account may administer: no credential reaches two trust domains."
  }
}

variable "admin_cidrs" {
  description = "From where administrators call the cluster's API server; empty: only from within."
  type        = list(string)
  default     = []
}

variable "alert_subscribers" {
  type    = list(string)
  default = []
}

variable "party_id" {
  description = "1 to 65535, stable for the life of the party's keys."
  type        = number
  validation {
    condition     = var.party_id >= 1 && var.party_id <= 65535 && floor(var.party_id) == var.party_id
    error_message = "party_id must be 1 to 65535."
  }
}

variable "messaging_url" {
  description = "https address of messaging's edge: the output messaging_url of the control plane."
  type        = string
  validation {
    condition     = can(regex("^https://[a-z0-9.-]+(:[1-9][0-9]{0,4})?$", var.messaging_url))
    error_message = "messaging_url must be https://HOST or https://HOST:PORT."
  }
}

variable "messaging_cidrs" {
  description = "Where messaging's edge is, for the network policy: the output messaging_cidrs of the control plane."
  type        = list(string)
}

variable "namespace" {
  type    = string
  default = "coterie"
}
