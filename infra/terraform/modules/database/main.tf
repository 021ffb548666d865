resource "aws_kms_key" "this" {
  description             = "${var.name}: databases at rest"
  enable_key_rotation     = true
  deletion_window_in_days = 30
}

resource "aws_security_group" "this" {
  name_prefix = "${var.name}-database-"
  description = "PostgreSQL and Redis of ${var.name}"
  vpc_id      = var.vpc_id
  lifecycle {
    create_before_destroy = true
  }
}

resource "aws_vpc_security_group_ingress_rule" "clients" {
  for_each                     = { postgresql = 5432, redis = 6379 }
  security_group_id            = aws_security_group.this.id
  referenced_security_group_id = var.clients
  ip_protocol                  = "tcp"
  from_port                    = each.value
  to_port                      = each.value
  description                  = "${each.key} from the cluster"
}

resource "aws_db_subnet_group" "this" {
  name_prefix = "${var.name}-"
  subnet_ids  = var.subnets
}

resource "aws_db_parameter_group" "this" {
  name_prefix = "${var.name}-"
  family      = "postgres17"
  parameter {
    name  = "rds.force_ssl"
    value = "1"
  }
  lifecycle {
    create_before_destroy = true
  }
}

# A signature is answered when it is on two disks: see docs/adr/0004.
resource "aws_db_instance" "this" {
  identifier                          = var.name
  engine                              = "postgres"
  engine_version                      = "17"
  instance_class                      = var.instance_class
  allocated_storage                   = var.storage_gb
  max_allocated_storage               = var.storage_gb * 10
  storage_type                        = "gp3"
  storage_encrypted                   = true
  kms_key_id                          = aws_kms_key.this.arn
  multi_az                            = true
  db_subnet_group_name                = aws_db_subnet_group.this.name
  vpc_security_group_ids              = [aws_security_group.this.id]
  parameter_group_name                = aws_db_parameter_group.this.name
  username                            = "coterie"
  manage_master_user_password         = true
  master_user_secret_kms_key_id       = aws_kms_key.this.arn
  iam_database_authentication_enabled = true
  backup_retention_period             = var.backup_days
  copy_tags_to_snapshot               = true
  deletion_protection                 = true
  skip_final_snapshot                 = false
  final_snapshot_identifier           = "${var.name}-final"
  auto_minor_version_upgrade          = true
  performance_insights_enabled        = true
  performance_insights_kms_key_id     = aws_kms_key.this.arn
  publicly_accessible                 = false
}

resource "aws_elasticache_subnet_group" "this" {
  name       = var.name
  subnet_ids = var.subnets
}

resource "aws_elasticache_replication_group" "this" {
  replication_group_id       = var.name
  description                = "Presence and online messages of ${var.name}"
  engine                     = "redis"
  engine_version             = "7.1"
  node_type                  = var.redis_node_type
  num_cache_clusters         = 2
  automatic_failover_enabled = true
  multi_az_enabled           = true
  subnet_group_name          = aws_elasticache_subnet_group.this.name
  security_group_ids         = [aws_security_group.this.id]
  at_rest_encryption_enabled = true
  kms_key_id                 = aws_kms_key.this.arn
  transit_encryption_enabled = true
  snapshot_retention_limit   = 0
}
