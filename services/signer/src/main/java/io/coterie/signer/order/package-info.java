/** Orders of a coordinator: their form, the plan of a session, and the reasons of a refusal. */
@NullMarked
package io.coterie.signer.order;

import org.jspecify.annotations.NullMarked;
