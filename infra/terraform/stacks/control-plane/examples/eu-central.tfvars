name              = "control"
account_id        = "444444444444"
region            = "eu-central-1"
zones             = ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
cidr              = "10.10.0.0/16"
admin_role_arns   = ["arn:aws:iam::444444444444:role/platform-admin"]
party_account_ids = ["111111111111", "222222222222", "333333333333"]
party_cidrs       = ["198.51.100.1/32", "198.51.100.2/32", "198.51.100.3/32"]
