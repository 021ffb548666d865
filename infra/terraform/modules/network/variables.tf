variable "name" {
  description = "Prefix of everything's name."
  type        = string
}

variable "cidr" {
  description = "Address range of the VPC; /16 to /20. Ranges of installations that are ever peered must not overlap."
  type        = string
  validation {
    condition = (
      can(cidrnetmask(var.cidr)) &&
      tonumber(split("/", var.cidr)[1]) >= 16 && tonumber(split("/", var.cidr)[1]) <= 20
    )
    error_message = "cidr must be an IPv4 range from /16 to /20."
  }
}

variable "zones" {
  description = "Availability zones, two or more."
  type        = list(string)
  validation {
    condition     = length(var.zones) >= 2
    error_message = "One zone is not enough: name two or more."
  }
}

variable "public" {
  description = "Whether load balancers may face the internet: the edge does, a party has nothing to offer."
  type        = bool
}

variable "log_retention_days" {
  description = "How long records of connections are kept."
  type        = number
  default     = 90
}
