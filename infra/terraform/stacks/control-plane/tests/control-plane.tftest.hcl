# The control plane, planned and applied against a provider that makes nothing.
mock_provider "aws" {
  mock_data "aws_partition" {
    defaults = { partition = "aws" }
  }
  mock_data "aws_iam_policy_document" {
    defaults = { json = "{\"Version\":\"2012-10-17\",\"Statement\":[]}" }
  }
  mock_resource "aws_iam_role" {
    defaults = { arn = "arn:aws:iam::444444444444:role/mock" }
  }
  mock_resource "aws_eks_cluster" {
    defaults = { arn = "arn:aws:eks:eu-central-1:444444444444:cluster/mock" }
  }
  mock_resource "aws_cloudwatch_log_group" {
    defaults = { arn = "arn:aws:logs:eu-central-1:444444444444:log-group:mock" }
  }
  mock_resource "aws_kms_key" {
    defaults = { arn = "arn:aws:kms:eu-central-1:444444444444:key/00000000-0000-0000-0000-000000000000" }
  }
  mock_resource "aws_db_instance" {
    defaults = {
      endpoint           = "db.example:5432"
      master_user_secret = [{ secret_arn = "arn:aws:secretsmanager:eu-central-1:444444444444:secret:mock" }]
    }
  }
  mock_resource "aws_elasticache_replication_group" {
    defaults = { primary_endpoint_address = "redis.example" }
  }
  mock_resource "aws_eip" {
    defaults = { public_ip = "192.0.2.1", allocation_id = "eipalloc-00000000000000000" }
  }
  mock_resource "aws_launch_template" {
    defaults = { id = "lt-00000000000000000", latest_version = 1 }
  }
  mock_resource "aws_sns_topic" {
    defaults = { arn = "arn:aws:sns:eu-central-1:444444444444:mock" }
  }
}

variables {
  name              = "control"
  account_id        = "444444444444"
  region            = "eu-central-1"
  zones             = ["eu-central-1a", "eu-central-1b", "eu-central-1c"]
  admin_role_arns   = ["arn:aws:iam::444444444444:role/platform-admin"]
  party_account_ids = ["111111111111", "222222222222", "333333333333"]
  host              = "coterie.example"
  party_cidrs       = ["198.51.100.1/32"]
  client_cidrs      = ["203.0.113.0/24"]
}

run "feeds_the_charts" {
  assert {
    condition     = yamldecode(output.messaging_values).database.url == "jdbc:postgresql://db.example:5432/messaging?sslmode=verify-full"
    error_message = "messaging's database"
  }
  assert {
    condition     = yamldecode(output.messaging_values).redis.uri == "rediss://redis.example:6379"
    error_message = "several replicas need Redis, with TLS"
  }
  assert {
    condition     = yamldecode(output.coordinator_values).database.url == "jdbc:postgresql://db.example:5432/coordinator?sslmode=verify-full"
    error_message = "the coordinator's database"
  }
  assert {
    condition     = yamldecode(output.edge_values).networkPolicy.clients == [{ cidr = "198.51.100.1/32" }, { cidr = "203.0.113.0/24" }, { cidr = "10.0.0.0/16" }]
    error_message = "parties, wallet backends and the load balancer's own checks may connect"
  }
}

run "the_edge_keeps_its_addresses_and_puts_them_out" {
  assert {
    condition     = length(output.messaging_cidrs) == 3 && alltrue([for cidr in output.messaging_cidrs : can(cidrhost(cidr, 0))])
    error_message = "one address for each zone, for the parties' messaging_cidrs"
  }
  assert {
    condition     = length(split(",", yamldecode(output.edge_values).service.annotations["service.beta.kubernetes.io/aws-load-balancer-eip-allocations"])) == 3 && length(split(",", yamldecode(output.edge_values).service.annotations["service.beta.kubernetes.io/aws-load-balancer-subnets"])) == 3
    error_message = "the load balancer must have these addresses, one in each public subnet"
  }
}

run "refuses_a_list_that_shuts_wallet_backends_out" {
  command = plan
  variables {
    client_cidrs = []
  }
  expect_failures = [var.party_cidrs]
}

run "refuses_a_list_that_shuts_parties_out" {
  command = plan
  variables {
    party_cidrs = []
  }
  expect_failures = [var.party_cidrs]
}

run "everybody_may_connect_if_nobody_is_named" {
  variables {
    party_cidrs  = []
    client_cidrs = []
  }
  assert {
    condition     = !can(yamldecode(output.edge_values).networkPolicy)
    error_message = "the chart's default must hold"
  }
}

run "alerts_reach_their_subscribers" {
  module {
    source = "../../modules/observability"
  }
  variables {
    name                    = "coterie-control"
    cluster                 = "coterie-control"
    alert_topic_subscribers = ["oncall@example.org"]
    rules_file              = "../../../../deploy/helm/coterie-observability/files/rules.yaml"
  }
  assert {
    condition     = one(one(local.alertmanager.receivers).sns_configs).topic_arn == aws_sns_topic.alerts.arn && local.alertmanager.route.receiver == one(local.alertmanager.receivers).name
    error_message = "the alert manager must send to the topic"
  }
  assert {
    condition     = yamldecode(yamldecode(aws_prometheus_alert_manager_definition.this.definition).alertmanager_config) == local.alertmanager
    error_message = "the workspace must have the configuration"
  }
  assert {
    condition     = aws_sns_topic_policy.alerts.arn == aws_sns_topic.alerts.arn && one(one(data.aws_iam_policy_document.publish.statement).principals).identifiers == toset(["aps.amazonaws.com"]) && contains(one(data.aws_iam_policy_document.publish.statement).actions, "sns:Publish")
    error_message = "the topic must let Prometheus publish"
  }
  assert {
    condition     = aws_sns_topic.alerts.kms_master_key_id == aws_kms_key.alerts.id && length([for s in data.aws_iam_policy_document.key.statement : s if contains(s.actions, "kms:GenerateDataKey*") && one(s.principals).identifiers == toset(["aps.amazonaws.com"])]) == 1
    error_message = "AWS's own key of topics does not let Prometheus publish"
  }
  assert {
    condition     = [for s in aws_sns_topic_subscription.alerts : s.endpoint] == ["oncall@example.org"]
    error_message = "subscribers"
  }
}

run "keeps_databases_and_tells_nobody" {
  command = plan
  module {
    source = "../../modules/database"
  }
  variables {
    name    = "coterie-control"
    vpc_id  = "vpc-0"
    subnets = ["subnet-0", "subnet-1"]
    clients = "sg-0"
  }
  assert {
    condition     = aws_db_instance.this.deletion_protection && aws_db_instance.this.storage_encrypted && aws_db_instance.this.multi_az && !aws_db_instance.this.publicly_accessible
    error_message = "the database must be protected, encrypted, in two zones and private"
  }
  assert {
    condition     = aws_db_instance.this.manage_master_user_password == true && aws_db_instance.this.password == null
    error_message = "no password may be in the state"
  }
  assert {
    condition     = aws_elasticache_replication_group.this.transit_encryption_enabled && aws_elasticache_replication_group.this.automatic_failover_enabled
    error_message = "Redis speaks TLS and fails over"
  }
}

run "refuses_a_party_in_its_own_account" {
  command = plan
  variables {
    party_account_ids = ["111111111111", "444444444444"]
  }
  expect_failures = [var.party_account_ids]
}

run "refuses_two_parties_in_one_account" {
  command = plan
  variables {
    party_account_ids = ["111111111111", "111111111111"]
  }
  expect_failures = [var.party_account_ids]
}
