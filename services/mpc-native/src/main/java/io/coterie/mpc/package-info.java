/** The native MPC core as seen from Java. Only this module touches foreign memory. */
@org.jspecify.annotations.NullMarked
package io.coterie.mpc;
