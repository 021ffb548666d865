output "key_arn" {
  value = aws_kms_key.this.arn
}

output "policy" {
  value = data.aws_iam_policy_document.this.json
}

output "passphrase_secret_arn" {
  value = aws_secretsmanager_secret.passphrase.arn
}
