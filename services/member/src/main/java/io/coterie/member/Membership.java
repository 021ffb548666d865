package io.coterie.member;

import com.google.protobuf.ByteString;

/**
 * What a member has become one of.
 *
 * @param group resource name, {@code groups/{group}}
 * @param epoch of the group
 * @param point 48 bytes, under which the issuers keep the member
 */
public record Membership(String group, int epoch, ByteString point) {}
