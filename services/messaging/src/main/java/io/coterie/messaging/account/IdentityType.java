package io.coterie.messaging.account;

/** The two identities of an account, in the order of their numbers in the database. */
public enum IdentityType {
  ACI,
  PNI
}
