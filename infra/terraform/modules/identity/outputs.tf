output "role_arn" {
  value = aws_iam_role.this.arn
}

output "role_name" {
  value = aws_iam_role.this.name
}

output "trust" {
  value = data.aws_iam_policy_document.trust.json
}
