package io.coterie.member;

import com.google.protobuf.ByteString;

/**
 * The place of a member in one epoch of a group.
 *
 * @param group resource name, {@code groups/{group}}
 * @param epoch of the group
 * @param point 48 bytes, under which the issuers keep the member
 */
public record Membership(String group, int epoch, ByteString point) {}
