locals {
  zones = { for i, zone in var.zones : zone => i }
}

resource "aws_vpc" "this" {
  cidr_block           = var.cidr
  enable_dns_hostnames = true
  enable_dns_support   = true
  tags                 = { Name = var.name }
}

# Nothing uses the default group; a machine that is put into it by mistake reaches nobody.
resource "aws_default_security_group" "none" {
  vpc_id = aws_vpc.this.id
}

resource "aws_internet_gateway" "this" {
  vpc_id = aws_vpc.this.id
  tags   = { Name = var.name }
}

# Pods and databases: no address of the internet leads here.
resource "aws_subnet" "private" {
  for_each          = local.zones
  vpc_id            = aws_vpc.this.id
  availability_zone = each.key
  cidr_block        = cidrsubnet(var.cidr, 4, each.value)
  tags = {
    Name                              = "${var.name}-private-${each.key}"
    "kubernetes.io/role/internal-elb" = "1"
  }
}

# The way out, and for the control plane the edge's load balancer.
resource "aws_subnet" "public" {
  for_each                = local.zones
  vpc_id                  = aws_vpc.this.id
  availability_zone       = each.key
  cidr_block              = cidrsubnet(var.cidr, 4, each.value + 8)
  map_public_ip_on_launch = false
  tags = merge(
    { Name = "${var.name}-public-${each.key}" },
    var.public ? { "kubernetes.io/role/elb" = "1" } : {},
  )
}

resource "aws_eip" "nat" {
  for_each = local.zones
  domain   = "vpc"
  tags     = { Name = "${var.name}-nat-${each.key}" }
}

# The way in: the edge's load balancer keeps these addresses when its Service is made anew, since parties are let out to
# them alone.
resource "aws_eip" "edge" {
  for_each = var.public ? local.zones : {}
  domain   = "vpc"
  tags     = { Name = "${var.name}-edge-${each.key}" }
}

resource "aws_nat_gateway" "this" {
  for_each      = local.zones
  allocation_id = aws_eip.nat[each.key].id
  subnet_id     = aws_subnet.public[each.key].id
  tags          = { Name = "${var.name}-${each.key}" }
  depends_on    = [aws_internet_gateway.this]
}

resource "aws_route_table" "public" {
  vpc_id = aws_vpc.this.id
  route {
    cidr_block = "0.0.0.0/0"
    gateway_id = aws_internet_gateway.this.id
  }
  tags = { Name = "${var.name}-public" }
}

resource "aws_route_table_association" "public" {
  for_each       = local.zones
  subnet_id      = aws_subnet.public[each.key].id
  route_table_id = aws_route_table.public.id
}

resource "aws_route_table" "private" {
  for_each = local.zones
  vpc_id   = aws_vpc.this.id
  route {
    cidr_block     = "0.0.0.0/0"
    nat_gateway_id = aws_nat_gateway.this[each.key].id
  }
  tags = { Name = "${var.name}-private-${each.key}" }
}

resource "aws_route_table_association" "private" {
  for_each       = local.zones
  subnet_id      = aws_subnet.private[each.key].id
  route_table_id = aws_route_table.private[each.key].id
}

# Records which address talked to which.
resource "aws_cloudwatch_log_group" "flows" {
  name              = "/coterie/${var.name}/flows"
  retention_in_days = var.log_retention_days
}

data "aws_iam_policy_document" "flows_trust" {
  statement {
    actions = ["sts:AssumeRole"]
    principals {
      type        = "Service"
      identifiers = ["vpc-flow-logs.amazonaws.com"]
    }
  }
}

data "aws_iam_policy_document" "flows" {
  statement {
    actions   = ["logs:CreateLogStream", "logs:PutLogEvents", "logs:DescribeLogStreams"]
    resources = ["${aws_cloudwatch_log_group.flows.arn}:*"]
  }
}

resource "aws_iam_role" "flows" {
  name               = "${var.name}-flows"
  assume_role_policy = data.aws_iam_policy_document.flows_trust.json
}

resource "aws_iam_role_policy" "flows" {
  name   = "write"
  role   = aws_iam_role.flows.id
  policy = data.aws_iam_policy_document.flows.json
}

resource "aws_flow_log" "this" {
  vpc_id          = aws_vpc.this.id
  traffic_type    = "ALL"
  log_destination = aws_cloudwatch_log_group.flows.arn
  iam_role_arn    = aws_iam_role.flows.arn
}
