# Messaging, coordinator and their databases: trusted for liveness, with nothing that could sign.
locals {
  full_name = "coterie-${var.name}"
  # Secret with AWS's certificate authorities of databases under ca.crt, which verify-full needs: README.md has the
  # command.
  database_ca_secret = "database-ca"
}

module "network" {
  source = "../../modules/network"
  name   = local.full_name
  cidr   = var.cidr
  zones  = var.zones
  public = true
}

module "cluster" {
  source          = "../../modules/cluster"
  name            = local.full_name
  vpc_id          = module.network.vpc_id
  subnets         = module.network.private_subnets
  admin_cidrs     = var.admin_cidrs
  admin_role_arns = var.admin_role_arns
  nodes           = { min = 3, desired = 3, max = 9 }
}

module "database" {
  source  = "../../modules/database"
  name    = local.full_name
  vpc_id  = module.network.vpc_id
  subnets = module.network.private_subnets
  clients = module.cluster.security_group
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
