data "aws_partition" "current" {}

# Administrators of the key cannot use it, and its users cannot administer it. The account's root is named because AWS
# refuses a key that may lock everybody out; it may not use it either.
data "aws_iam_policy_document" "this" {
  statement {
    sid = "Administer"
    actions = [
      "kms:Describe*", "kms:Get*", "kms:List*", "kms:Put*", "kms:Update*", "kms:Enable*", "kms:Disable*",
      "kms:TagResource", "kms:UntagResource", "kms:ScheduleKeyDeletion", "kms:CancelKeyDeletion",
    ]
    resources = ["*"]
    principals {
      type = "AWS"
      identifiers = concat(
        var.admin_role_arns, ["arn:${data.aws_partition.current.partition}:iam::${var.account_id}:root"]
      )
    }
  }
  statement {
    sid       = "Unwrap"
    actions   = ["kms:Decrypt", "kms:GenerateDataKey", "kms:DescribeKey"]
    resources = ["*"]
    principals {
      type        = "AWS"
      identifiers = [var.user_role_arn]
    }
  }
  # Nobody of another account, whatever another policy says.
  statement {
    sid       = "OwnAccountOnly"
    effect    = "Deny"
    actions   = ["kms:*"]
    resources = ["*"]
    principals {
      type        = "AWS"
      identifiers = ["*"]
    }
    condition {
      test     = "StringNotEquals"
      variable = "aws:PrincipalAccount"
      values   = [var.account_id]
    }
  }
}

resource "aws_kms_key" "this" {
  description              = "${var.name}: wraps the secret that unseals the party"
  key_usage                = "ENCRYPT_DECRYPT"
  customer_master_key_spec = "SYMMETRIC_DEFAULT"
  enable_key_rotation      = true
  deletion_window_in_days  = 30
  multi_region             = false
  policy                   = data.aws_iam_policy_document.this.json
}

resource "aws_kms_alias" "this" {
  name          = "alias/${var.name}"
  target_key_id = aws_kms_key.this.key_id
}

# The passphrase that unseals the party. Its value is put there by the party's operator and is in no state file.
resource "aws_secretsmanager_secret" "passphrase" {
  name                    = "${var.name}/passphrase"
  description             = "Unseals the party; wrapped by its own key"
  kms_key_id              = aws_kms_key.this.arn
  recovery_window_in_days = 30
}
