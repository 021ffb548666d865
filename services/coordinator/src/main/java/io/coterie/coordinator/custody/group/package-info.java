/** Groups of approvers: the making of each of their epochs by its issuers and openers. */
@NullMarked
package io.coterie.coordinator.custody.group;

import org.jspecify.annotations.NullMarked;
