variable "name" {
  type = string
}

variable "cluster" {
  description = "Name of the EKS cluster."
  type        = string
}

variable "cluster_arn" {
  type = string
}

variable "account_id" {
  type = string
}

variable "namespace" {
  type = string
}

variable "service_account" {
  type = string
}
