variable "name" {
  description = "Name of the installation."
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

variable "party_account_ids" {
  description = "Accounts of the parties: none of them may be this one."
  type        = list(string)
  validation {
    condition = (
      !contains(var.party_account_ids, var.account_id) &&
      length(distinct(var.party_account_ids)) == length(var.party_account_ids)
    )
    error_message = "Each party needs an account of its own, and the control plane another."
  }
}

variable "messaging_replicas" {
  type    = number
  default = 2
}

variable "host" {
  description = "DNS name of the edge's load balancer, which its certificate has."
  type        = string
  validation {
    condition     = can(regex("^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$", var.host))
    error_message = "host must be a DNS name."
  }
}

variable "party_cidrs" {
  description = "The way_out of each party's stack. If this and client_cidrs are empty, everybody may connect."
  type        = list(string)
  default     = []
  validation {
    condition     = (length(var.party_cidrs) == 0) == (length(var.client_cidrs) == 0)
    error_message = "The edge has one list: name party_cidrs and client_cidrs or neither, since one alone shuts the others out; 0.0.0.0/0 stands for everybody."
  }
}

variable "client_cidrs" {
  description = "Where wallet backends come from; needed with party_cidrs, which alone would shut them out."
  type        = list(string)
  default     = []
}
