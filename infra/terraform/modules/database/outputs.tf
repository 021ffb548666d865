output "jdbc" {
  description = "JDBC address of each service's database, by its name. Both are made by hand: docs/runbooks/install.md."
  value = {
    for name in ["messaging", "coordinator"] :
    name => "jdbc:postgresql://${aws_db_instance.this.endpoint}/${name}?sslmode=verify-full"
  }
}

output "master_secret_arn" {
  description = "Secret with the master's password, which AWS rotates; for an administrator, never for a service."
  value       = aws_db_instance.this.master_user_secret[0].secret_arn
}

output "redis_uri" {
  value = "rediss://${aws_elasticache_replication_group.this.primary_endpoint_address}:6379"
}

output "redis_port" {
  value = 6379
}

output "port" {
  value = 5432
}
