output "name" {
  value = aws_eks_cluster.this.name
}

output "arn" {
  value = aws_eks_cluster.this.arn
}

output "endpoint" {
  value = aws_eks_cluster.this.endpoint
}

output "security_group" {
  description = "Of all pods and nodes."
  value       = aws_eks_cluster.this.vpc_config[0].cluster_security_group_id
}
