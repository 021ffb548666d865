# One party: an account, a network, a cluster and a key of its own.
locals {
  full_name      = "coterie-${var.name}"
  messaging_port = tonumber(coalesce(regex("^https://[^/:]+:?([0-9]+)?", var.messaging_url)[0], "443"))
}

module "network" {
  source = "../../modules/network"
  name   = local.full_name
  cidr   = var.cidr
  zones  = var.zones
  public = false
}

module "cluster" {
  source          = "../../modules/cluster"
  name            = local.full_name
  vpc_id          = module.network.vpc_id
  subnets         = module.network.private_subnets
  admin_cidrs     = var.admin_cidrs
  admin_role_arns = var.admin_role_arns
  nodes           = { min = 2, desired = 2, max = 4 }
}

module "identity" {
  source          = "../../modules/identity"
  name            = "${local.full_name}-signer"
  cluster         = module.cluster.name
  cluster_arn     = module.cluster.arn
  account_id      = var.account_id
  namespace       = var.namespace
  service_account = "signer"
}

module "wrapping_key" {
  source          = "../../modules/wrapping-key"
  name            = local.full_name
  account_id      = var.account_id
  user_role_arn   = module.identity.role_arn
  admin_role_arns = var.admin_role_arns
}

data "aws_iam_policy_document" "signer" {
  statement {
    actions   = ["secretsmanager:GetSecretValue"]
    resources = [module.wrapping_key.passphrase_secret_arn]
  }
  statement {
    actions   = ["kms:Decrypt"]
    resources = [module.wrapping_key.key_arn]
  }
}

resource "aws_iam_role_policy" "signer" {
  name   = "unseal"
  role   = module.identity.role_name
  policy = data.aws_iam_policy_document.signer.json
}

module "observability" {
  source                  = "../../modules/observability"
  name                    = local.full_name
  cluster                 = module.cluster.name
  account_id              = var.account_id
  region                  = var.region
  alert_topic_subscribers = var.alert_subscribers
  rules_file              = "${path.module}/../../../../deploy/helm/coterie-observability/files/rules.yaml"
}
