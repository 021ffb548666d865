/**
 * Groups of anonymous approvers as those outside the installation see them: a member joins with a
 * ticket and approves ({@link io.coterie.member.MemberFolder}, {@link io.coterie.member.Joining},
 * {@link io.coterie.member.Approvals}), anybody checks a group and counts approvals ({@link
 * io.coterie.member.AttestedGroups}), an auditor has one opened ({@link
 * io.coterie.member.OpenedApproval}).
 *
 * <p>Nothing here prints, asks or ends a process. Secrets of a member are in plaintext in the
 * native core alone, which a JVM loads with {@code --enable-native-access=ALL-UNNAMED}.
 *
 * <p>A failure is a {@link io.coterie.member.MemberException}, or the {@link
 * io.grpc.StatusRuntimeException} of a call that the coordinator refused or did not answer.
 */
@org.jspecify.annotations.NullMarked
package io.coterie.member;
