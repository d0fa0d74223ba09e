"""What brings rows to the sites: gateways, and rides to send through them."""
