# State is apart for each stack of each account: `terraform init -backend-config=...` names a bucket of that account.
terraform {
  required_version = ">= 1.9"
  required_providers {
    aws = {
      source  = "hashicorp/aws"
      version = "5.100.0"
    }
  }
  backend "s3" {
    encrypt      = true
    use_lockfile = true
  }
}

provider "aws" {
  region = var.region
  # Credentials of another account change nothing.
  allowed_account_ids = [var.account_id]
  default_tags {
    tags = { coterie = var.name }
  }
}
