/**
 * The making of groups of approvers at one party, step by step: each step is done once for a group
 * and epoch, and its result is on disk before it is told.
 *
 * <p>{@link GroupService} takes orders of coordinators and envelopes of parties. {@link
 * GroupOrderCheck} judges an order; {@link GroupSteps} has what the core does in each step; {@link
 * GroupStore} keeps it.
 */
@NullMarked
package io.coterie.signer.group;

import org.jspecify.annotations.NullMarked;
