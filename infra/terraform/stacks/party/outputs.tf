output "values" {
  description = "For coterie-signer: `terraform output -raw values > values.yaml`. Secrets: docs/runbooks/install.md."
  value = yamlencode({
    party = { name = var.name, id = var.party_id, region = var.region }
    channel = {
      messaging = var.messaging_url
    }
    networkPolicy = {
      messaging = { namespace = "", pods = {}, cidrs = var.messaging_cidrs, port = local.messaging_port }
    }
  })
}

output "cluster" {
  value = module.cluster.name
}

output "way_out" {
  description = "Addresses that the control plane's edge sees this party come from."
  value       = module.network.way_out
}

output "passphrase_secret_arn" {
  description = "Where the operator puts the passphrase, and the signer's role reads it."
  value       = module.wrapping_key.passphrase_secret_arn
}

output "remote_write_url" {
  value = module.observability.remote_write_url
}
