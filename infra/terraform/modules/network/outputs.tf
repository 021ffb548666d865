output "vpc_id" {
  value = aws_vpc.this.id
}

output "private_subnets" {
  description = "One for each zone."
  value       = [for zone in var.zones : aws_subnet.private[zone].id]
}

output "way_out" {
  description = "Addresses from which everything here is seen by others, for the allow list of messaging's edge."
  value       = [for zone in var.zones : "${aws_eip.nat[zone].public_ip}/32"]
}
