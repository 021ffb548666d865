variable "name" {
  type = string
}

variable "account_id" {
  description = "The account that everything here belongs to."
  type        = string
}

variable "user_role_arn" {
  description = "The one role that may unwrap with the key: the party's signer."
  type        = string
}

variable "admin_role_arns" {
  description = "Roles that may administer the key, and not use it."
  type        = list(string)
  validation {
    condition     = length(var.admin_role_arns) > 0
    error_message = "A key that nobody administers cannot be kept: name a role."
  }
}
