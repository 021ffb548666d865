output "messaging_values" {
  description = "For coterie-messaging: `terraform output -raw messaging_values`."
  value = yamlencode({
    replicas = var.messaging_replicas
    database = { url = module.database.jdbc["messaging"] }
    config   = { redis = { uri = module.database.redis_uri } }
    networkPolicy = {
      clients  = var.party_cidrs == [] ? [] : [{ cidrs = var.party_cidrs }]
      database = { namespace = "", pods = {}, cidrs = [var.cidr], port = module.database.port }
    }
  })
}

output "coordinator_values" {
  description = "For coterie-coordinator."
  value = yamlencode({
    region   = var.region
    database = { url = module.database.jdbc["coordinator"] }
    networkPolicy = {
      database = { namespace = "", pods = {}, cidrs = [var.cidr], port = module.database.port }
    }
  })
}

output "cluster" {
  value = module.cluster.name
}

output "database_secret_arn" {
  value = module.database.master_secret_arn
}

output "remote_write_url" {
  value = module.observability.remote_write_url
}
