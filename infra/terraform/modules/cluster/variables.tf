variable "name" {
  type = string
}

variable "kubernetes_version" {
  type    = string
  default = "1.33"
}

variable "vpc_id" {
  type = string
}

variable "subnets" {
  description = "Private subnets, one for each zone."
  type        = list(string)
}

variable "admin_cidrs" {
  description = "From where the API server may be called. Empty: only from within the VPC."
  type        = list(string)
  default     = []
  validation {
    condition     = !contains(var.admin_cidrs, "0.0.0.0/0")
    error_message = "The API server is not for everybody."
  }
}

variable "admin_role_arns" {
  description = "Roles that administer the cluster."
  type        = list(string)
}

variable "instance_types" {
  type    = list(string)
  default = ["m7i.large"]
}

variable "nodes" {
  description = "Nodes at least, at start and at most."
  type        = object({ min = number, desired = number, max = number })
}
