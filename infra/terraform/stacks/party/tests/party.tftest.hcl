# Three parties of three regions, planned and applied against a provider that makes nothing.
mock_provider "aws" {
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{\"Version\":\"2012-10-17\",\"Statement\":[]}" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::111111111111:role/mock" }
  }
  mock_resource "aws_eks_cluster" {
    defaults = { arn = "arn:aws:eks:eu-central-1:111111111111:cluster/mock" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-central-1:111111111111:log-group:mock" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:eu-central-1:111111111111:key/00000000-0000-0000-0000-000000000000" }
  }
  mock_resource "aws_secretsmanager_secret" {
    defaults = { arn = "arn:aws:secretsmanager:eu-central-1:111111111111:secret:mock" }
  }
  mock_resource "aws_launch_template" {
    defaults = { id = "lt-00000000000000000", latest_version = 1 }
  }
  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:eu-central-1:111111111111:mock" }
  }
}

variables {
  messaging_url   = "https://coterie.example:8444"
  messaging_cidrs = ["203.0.113.0/28"]
}

run "eu_central" {
  variables {
    name            = "party-1"
    party_id        = 1
    account_id      = "111111111111"
    region          = "eu-central-1"
    zones           = ["eu-central-1a", "eu-central-1b"]
    admin_role_arns = ["arn:aws:iam::111111111111:role/party-admin"]
  }

  assert {
    condition     = yamldecode(output.values).party == { name = "party-1", id = 1, region = "eu-central-1" }
    error_message = "the chart's values must name the party"
  }
  assert {
    condition     = yamldecode(output.values).networkPolicy.messaging.cidrs == ["203.0.113.0/28"]
    error_message = "the chart lets the signer out to messaging only"
  }
  assert {
    condition     = yamldecode(output.values).networkPolicy.messaging.port == 8444
    error_message = "the way out is open to the port of the address"
  }
  assert {
    condition     = length(output.way_out) == 2
    error_message = "one address for each zone"
  }
}

run "only_the_signer_unwraps_and_nobody_of_another_account" {
  command = plan
  module {
    source = "../../modules/wrapping-key"
  }
  override_data {
    target = data.aws_iam_policy_document.this
    values = { json = "{\"Version\":\"2012-10-17\",\"Statement\":[]}" }
  }
  variables {
    name            = "coterie-party-1"
    account_id      = "111111111111"
    user_role_arn   = "arn:aws:iam::111111111111:role/signer"
    admin_role_arns = ["arn:aws:iam::111111111111:role/party-admin"]
  }

  assert {
    condition = alltrue([
      for s in data.aws_iam_policy_document.this.statement : alltrue([
        for p in s.principals : alltrue([for id in p.identifiers : s.effect == "Deny" || strcontains(id, "::111111111111:")])
      ])
    ])
    error_message = "only principals of the own account are let in"
  }
  assert {
    condition     = length([for s in data.aws_iam_policy_document.this.statement : s if contains(s.actions, "kms:Decrypt") && s.effect != "Deny"]) == 1
    error_message = "one statement unwraps"
  }
  assert {
    condition     = one([for s in data.aws_iam_policy_document.this.statement : one(s.principals).identifiers if s.sid == "Unwrap"]) == toset(["arn:aws:iam::111111111111:role/signer"])
    error_message = "only the signer unwraps"
  }
  assert {
    condition     = length([for s in data.aws_iam_policy_document.this.statement : s if s.sid == "Administer" && (contains(s.actions, "kms:Decrypt") || contains(s.actions, "kms:*"))]) == 0
    error_message = "whoever administers the key must not be able to use it"
  }
}

run "an_address_without_port_is_443" {
  command = plan
  variables {
    name            = "party-1"
    party_id        = 1
    account_id      = "111111111111"
    region          = "eu-central-1"
    zones           = ["eu-central-1a", "eu-central-1b"]
    admin_role_arns = ["arn:aws:iam::111111111111:role/party-admin"]
    messaging_url   = "https://coterie.example"
  }
  assert {
    condition     = yamldecode(output.values).networkPolicy.messaging.port == 443
    error_message = "the port of https"
  }
}

run "us_east" {
  command = plan
  variables {
    name            = "party-2"
    party_id        = 2
    account_id      = "222222222222"
    region          = "us-east-1"
    zones           = ["us-east-1a", "us-east-1b"]
    admin_role_arns = ["arn:aws:iam::222222222222:role/party-admin"]
  }
}

run "ap_south" {
  command = plan
  variables {
    name            = "party-3"
    party_id        = 3
    account_id      = "333333333333"
    region          = "ap-south-1"
    zones           = ["ap-south-1a", "ap-south-1b"]
    admin_role_arns = ["arn:aws:iam::333333333333:role/party-admin"]
  }
}

run "refuses_an_administrator_of_another_account" {
  command = plan
  variables {
    name            = "party-1"
    party_id        = 1
    account_id      = "111111111111"
    region          = "eu-central-1"
    zones           = ["eu-central-1a", "eu-central-1b"]
    admin_role_arns = ["arn:aws:iam::111111111111:role/party-admin", "arn:aws:iam::222222222222:role/party-admin"]
  }
  expect_failures = [var.admin_role_arns]
}

run "refuses_messaging_without_tls" {
  command = plan
  variables {
    name            = "party-1"
    party_id        = 0
    account_id      = "111111111111"
    region          = "eu-central-1"
    zones           = ["eu-central-1a", "eu-central-1b"]
    admin_role_arns = ["arn:aws:iam::111111111111:role/party-admin"]
    messaging_url   = "http://messaging.coterie.example"
  }
  expect_failures = [var.messaging_url, var.party_id]
}
