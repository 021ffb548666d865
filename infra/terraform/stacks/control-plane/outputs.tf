output "messaging_values" {
  description = "For coterie-messaging: `terraform output -raw messaging_values`."
  value = yamlencode({
    replicas = var.messaging_replicas
    database = { url = module.database.jdbc["messaging"], caSecret = local.database_ca_secret }
    redis    = { uri = module.database.redis_uri }
    networkPolicy = {
      database = { namespace = "", pods = {}, cidrs = [var.cidr], port = module.database.port }
      redis    = { namespace = "", pods = {}, cidrs = [var.cidr], port = module.database.redis_port }
    }
  })
}

output "coordinator_values" {
  description = "For coterie-coordinator."
  value = yamlencode({
    region   = var.region
    database = { url = module.database.jdbc["coordinator"], caSecret = local.database_ca_secret }
    networkPolicy = {
      database = { namespace = "", pods = {}, cidrs = [var.cidr], port = module.database.port }
    }
  })
}

output "edge_values" {
  description = "For coterie-edge: a load balancer that keeps the callers' addresses, open to those of the variables."
  value = yamlencode(merge(
    {
      service = {
        type = "LoadBalancer"
        annotations = {
          "service.beta.kubernetes.io/aws-load-balancer-type"                    = "external"
          "service.beta.kubernetes.io/aws-load-balancer-scheme"                  = "internet-facing"
          "service.beta.kubernetes.io/aws-load-balancer-nlb-target-type"         = "ip"
          "service.beta.kubernetes.io/aws-load-balancer-target-group-attributes" = "preserve_client_ip.enabled=true"
          "service.beta.kubernetes.io/aws-load-balancer-eip-allocations"         = join(",", module.network.way_in_allocations)
          "service.beta.kubernetes.io/aws-load-balancer-subnets"                 = join(",", module.network.public_subnets)
        }
      }
    },
    # Without a list the chart's default holds: everybody may connect, and needs a certificate. The load balancer checks
    # from within.
    { for name, callers in { networkPolicy = concat(var.party_cidrs, var.client_cidrs) } :
      name => { clients = [for cidr in concat(callers, [var.cidr]) : { cidr = cidr }] } if length(callers) > 0
    },
  ))
}

output "messaging_url" {
  description = "The parties' messaging_url: the edge's port for parties."
  value       = "https://${var.host}:8444"
}

output "messaging_cidrs" {
  description = "The parties' messaging_cidrs: the addresses of the edge's load balancer, for the DNS name in host too."
  value       = module.network.way_in
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
