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

output "way_in" {
  description = "Addresses of the edge's load balancer, one for each zone; none if nothing may face the internet."
  value       = [for zone in var.zones : "${aws_eip.edge[zone].public_ip}/32" if var.public]
}

output "way_in_allocations" {
  description = "The same as AWS names them, in the order of the public subnets."
  value       = [for zone in var.zones : aws_eip.edge[zone].allocation_id if var.public]
}

output "public_subnets" {
  description = "One for each zone."
  value       = [for zone in var.zones : aws_subnet.public[zone].id]
}
